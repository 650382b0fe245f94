/* The sentences of selection: why an image does not fit a device. */
#include "loader/target.h"
#include <stdio.h>
#include <string.h>

static void add_version(kiln__text *out, uint32_t version, uint32_t thousand) {
    kiln__text_add(out, "%u.%u", version / thousand, version % thousand / (thousand == 1000 ? 10 : 1));
}

static void add_driver_need(kiln__text *out, const kiln_image *image) {
    int32_t lowest = (int32_t)image->driver_version;
    if (!lowest) lowest = kiln__ptx_driver((int32_t)image->format_version);
    kiln__text_add(out, "needs driver ");
    if (lowest == INT32_MAX)
        kiln__text_add(out, "newer than this kiln knows");
    else
        add_version(out, (uint32_t)lowest, 1000);
    if (image->kind == KILN_IMAGE_PTX && image->format_version) {
        kiln__text_add(out, " for PTX ");
        add_version(out, image->format_version, 10);
    }
}

/* Adds what the image needs, for one reason. */
static void add_need(kiln__text *out, const kiln_image *image, uint32_t reason, const char *sentence) {
    const char *target = image->target ? image->target : "?";
    switch (reason) {
    case KILN_REASON_EXACT:
        kiln__text_add(out, "needs exactly %s", target);
        break;
    case KILN_REASON_FAMILY:
        kiln__text_add(out, "needs a chip of the family of %s", target);
        break;
    case KILN_REASON_MAJOR:
        kiln__text_add(out, "%s of %s", sentence, target);
        break;
    case KILN_REASON_MINOR:
    case KILN_REASON_CAPABILITY:
        kiln__text_add(out, "needs %s or higher", target);
        break;
    case KILN_REASON_CPU_LEVEL:
        kiln__text_add(out, "needs %s", target);
        break;
    case KILN_REASON_DRIVER:
        add_driver_need(out, image);
        break;
    default:
        kiln__text_add(out, "%s", sentence);
    }
}

size_t kiln_reason_text(const kiln_image *image, const kiln_target *target, uint32_t reasons, char *text, size_t size) {
    if (text && size) text[0] = '\0';
    if (!image || !target || (!text && size)) return 0;
    static const struct {
        uint32_t bit;
        const char *sentence;
    } rows[] = {
#define REASON_ROW(name, bit, sentence) {KILN_REASON_##name, sentence},
        KILN_REASON_MAP(REASON_ROW)
#undef REASON_ROW
    };
    kiln__text out = {text, size, 0};
    kiln__text_add(&out, "%s %s: ", image->target ? image->target : "?", kiln_image_kind_name(image->kind));
    if (!reasons) {
        kiln__text_add(&out, "fits");
        return out.length;
    }
    bool first = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!(reasons & rows[i].bit)) continue;
        kiln__text_add(&out, "%s", first ? "" : "; ");
        add_need(&out, image, rows[i].bit, rows[i].sentence);
        first = false;
    }
    if (reasons & KILN_REASON_BACKEND) {
        kiln__text_add(&out, ", device is on %s", kiln_backend_name(target->backend));
        return out.length;
    }
    if (reasons & ~(uint32_t)(KILN_REASON_DRIVER | KILN_REASON_REFUSED | KILN_REASON_MALFORMED | KILN_REASON_TARGET)) {
        char name[64];
        kiln_target_text(target, name, sizeof name);
        kiln__text_add(&out, ", device is %s", name);
    }
    if (reasons & KILN_REASON_DRIVER) {
        kiln__text_add(&out, ", driver is ");
        add_version(&out, (uint32_t)target->driver_version, 1000);
    }
    return out.length;
}
