/* The GPU that another library has chosen, whatever number that library gives it.
 *
 *   same_gpu ID...
 *
 * An ID is a PCI address or a UUID. HIP and CUDA return the address of their device i from hipDeviceGetPCIBusId and
 * cudaDeviceGetPCIBusId; PyTorch gives the UUID: str(torch.cuda.get_device_properties(i).uuid). Prints each GPU's own
 * number in kiln, and the names by which others know it. */
#include <kiln/kiln.h>
#include <stdio.h>

static kiln_status print(const kiln_device *device) {
    kiln_device_info info;
    char address[32], uuid[64];
    kiln_status status = kiln_device_get_info(device, &info);
    if (status) return status;
    kiln_device_pci_text(&info, address, sizeof address);
    kiln_device_uuid_text(&info, uuid, sizeof uuid);
    printf("%s:%d %s %s %s\n", kiln_backend_name(info.backend), (int)info.ordinal, address, uuid, info.name);
    return KILN_OK;
}

int main(int argc, char **argv) {
    kiln_status status = argc > 1 ? KILN_OK : KILN_ERROR_INVALID_ARGUMENT;
    if (status) fprintf(stderr, "usage: same_gpu ID...\n");

    for (int i = 1; i < argc && !status; i++) {
        kiln_device *device = NULL;
        status = kiln_device_open(&(kiln_device_options){.id = argv[i]}, &device);
        if (!status) status = print(device);
        if (status) fprintf(stderr, "%s: %s\n", kiln_status_text(status), kiln_last_error());
        kiln_device_close(device);
    }
    return status != KILN_OK;
}
