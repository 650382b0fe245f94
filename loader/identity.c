#include "loader/identity.h"
#include "loader/status.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { UUID_BYTES = sizeof((kiln_device_info *)0)->uuid };

size_t kiln_device_uuid_text(const kiln_device_info *info, char *text, size_t size) {
    static const uint8_t none[UUID_BYTES];
    if (!info || !text || !size) return 0;
    kiln__text all = {text, size, 0};
    *text = '\0';
    if (!memcmp(info->uuid, none, sizeof none)) return 0;
    kiln__text_add(&all, "GPU-");
    if (info->backend != KILN_BACKEND_CUDA) { /* AMD's UUID is text */
        kiln__text_add(&all, "%.*s", UUID_BYTES, (const char *)info->uuid);
        return all.length;
    }
    for (int i = 0; i < UUID_BYTES; i++)
        kiln__text_add(&all, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info->uuid[i]);
    return all.length;
}

size_t kiln_device_pci_text(const kiln_device_info *info, char *text, size_t size) {
    if (!info || !text || !size) return 0;
    kiln__text all = {text, size, 0};
    *text = '\0';
    if (info->pci_bus >= 0)
        kiln__text_add(&all, "%04x:%02x:%02x.%x", (unsigned)info->pci_domain, (unsigned)info->pci_bus,
                       (unsigned)info->pci_device, (unsigned)info->pci_function);
    return all.length;
}

/* Skips the prefix, which frameworks omit. */
static const char *without_prefix(const char *uuid) {
    return strncasecmp(uuid, "GPU-", 4) == 0 || strncasecmp(uuid, "MIG-", 4) == 0 ? uuid + 4 : uuid;
}

/* Reads a hexadecimal number and the character after it, which must be end; -1 if the text has another form. */
static long read_hex(const char **text, char end) {
    size_t length = strspn(*text, "0123456789abcdefABCDEF");
    if (!length || (*text)[length] != end) return -1;
    long value = strtol(*text, NULL, 16);
    *text += length + 1;
    return value;
}

/* Parses "[domain:]bus:device[.function]". */
static bool is_pci(const kiln_device_info *info, const char *text) {
    const char *colon = strchr(text, ':');
    const bool has_domain = colon && strchr(colon + 1, ':'), has_function = strchr(text, '.');
    const long domain = has_domain ? read_hex(&text, ':') : 0, bus = read_hex(&text, ':');
    const long device = bus < 0 ? -1 : read_hex(&text, has_function ? '.' : '\0');
    const long function = device < 0 ? -1 : has_function ? read_hex(&text, '\0') : 0;
    return function >= 0 && domain == info->pci_domain && bus == info->pci_bus && device == info->pci_device &&
           function == info->pci_function;
}

bool kiln__identity_is(const kiln_device_info *info, const char *text) {
    char uuid[KILN__IDENTITY_SIZE];
    return (kiln_device_uuid_text(info, uuid, sizeof uuid) &&
            strcasecmp(without_prefix(uuid), without_prefix(text)) == 0) ||
           is_pci(info, text);
}
