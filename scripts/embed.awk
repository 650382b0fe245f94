# The bundle table of an operator as C, from its manifest. Variables: op, parts, names (kernels), levels (CPU targets), sizes
# ("SIZE FILE" of each image, compressed).

# Reads "key=value<separator>key=value..." into the array given.
function read_fields(text, separator, fields,    count, pair, i, pieces) {
    split("", fields)
    count = split(text, pieces, separator)
    for (i = 1; i <= count; i++) {
        pair = index(pieces[i], "=")
        fields[substr(pieces[i], 1, pair - 1)] = substr(pieces[i], pair + 1)
    }
}

# "6.3" as 63 with scale 10, "12.4" as 12040 with scale 1000.
function version(text, scale,    numbers) {
    split(text, numbers, ".")
    return numbers[1] * scale + numbers[2] * (scale == 10 ? 1 : 10)
}

function bytes_of(hex,    i, list) {
    for (i = 1; i <= 64; i += 2) list = list (i > 1 ? ", " : "") "0x" substr(hex, i, 2)
    return list
}

# What a tuned kernel says of its shape; maps: "240:64x128:64x128", the offset and the boxes.
function shape_of(kernel,    sizes, boxes, count, i, text) {
    text = kernel["programmatic"] ? ", .programmatic = 1" : ""
    if (!("tile" in kernel)) return text
    split(kernel["tile"], sizes, "x")
    text = text sprintf(",\n     .tile = {%d, %d, %d}, .stage_bytes = %d, .rate = %d, .stages = %d, .cluster = %d", sizes[1], sizes[2],
        sizes[3], kernel["stage"], kernel["rate"], kernel["stages"], kernel["cluster"])
    if (!("maps" in kernel)) return text
    count = split(kernel["maps"], boxes, ":")
    text = text sprintf(",\n     .map_offset = %d, .boxes = {", boxes[1])
    for (i = 2; i <= count; i++) {
        gsub(/x/, ", ", boxes[i])
        text = text (i > 2 ? ", " : "") "{" boxes[i] "}"
    }
    return text "}"
}

# A kernel that an image does not have.
function absent(name) {
    return "    {.name = \"" name "\", .absent = 1},\n"
}

# An image's bytes. Only the assembler reads them: as C, they took a compiler 20 MB of memory and 0.1 s for each MB.
function print_image(identifier, file) {
    printf "\nextern const unsigned char %s[] __attribute__((visibility(\"hidden\")));\n", identifier
    printf "__asm__(\".pushsection .rodata\\n.balign 64\\n%s:\\n.incbin \\\"%s\\\"\\n.popsection\");\n", identifier, file
}

BEGIN {
    print "/* Written by scripts/embed.sh from embedded/" op "/manifest. */"
    print "#include <kiln/kiln.h>"
    size_count = split(sizes, words, " ")
    for (i = 1; i < size_count; i += 2) {
        file = words[i + 1]
        sub(/^.*\//, "", file)
        sub(/\.gz$/, "", file)
        packed_size[file] = words[i]
        packed_file[file] = words[i + 1]
    }
    part_count = split(parts, part)
    name_count = split(names, name)
    for (i = 1; i <= name_count; i++) tuned[i] = sub(/^tuned:/, "", name[i])
    level_count = split(levels, level)
    kind["ptx"] = "KILN_IMAGE_PTX"
    kind["cubin"] = "KILN_IMAGE_CUBIN"
    kind["hsaco"] = "KILN_IMAGE_HSACO"
}

/ role=linked / {
    read_fields($0, " ", image)
    identifier = image["file"]
    gsub(/[.-]/, "_", identifier)
    print_image(identifier, packed_file[image["file"]])

    split("", rows)
    for (i = 1; i <= NF; i++) {
        if ($i !~ /^kernel=/) continue
        read_fields($i, ",", kernel)
        rows[kernel["kernel"]] = sprintf("    {.name = \"%s\", .arguments_size = %d, .registers = %d, .spill_bytes = %d, " \
            ".shared_bytes = %d, .max_threads = %d%s},\n", kernel["kernel"], kernel["arguments"], kernel["registers"],
            kernel["spills"], kernel["shared"], kernel["threads"], shape_of(kernel))
        arguments[kernel["kernel"]] = kernel["arguments"]
    }
    printf "\nstatic const kiln_kernel_info %s_kernels[] = {\n", identifier
    for (i = 1; i <= name_count; i++) {
        kernel_name = "kiln_" name[i] "_" image["part"]
        printf "%s", kernel_name in rows ? rows[kernel_name] : absent(kernel_name)
    }
    print "};"

    images[image["part"]] = images[image["part"]] sprintf("    {.target = \"%s\",\n     .data = %s,\n     .size = %d,\n" \
        "     .kind = %s,\n     .format_version = %d,\n     .driver_version = %d,\n" \
        "     .kernel_size = sizeof(kiln_kernel_info),\n     .kernels = %s_kernels,\n     .sha256 = {%s},\n" \
        "     .packed_size = %d},\n",
        image["target"], identifier, image["size"], kind[image["kind"]],
        ("ptx" in image) ? version(image["ptx"], 10) : image["code_object"],
        ("driver" in image) ? version(image["driver"], 1000) : 0, identifier, bytes_of(image["sha256"]),
        packed_size[image["file"]])
}

END {
    for (p = 1; p <= part_count; p++) {
        printf "\nstatic const char *const names_%s[] = {", part[p]
        for (n = 1; n <= name_count; n++) printf "%s\"kiln_%s_%s\"", (n > 1 ? ", " : ""), name[n], part[p]
        print "};"
        for (l = 1; l <= level_count; l++) {
            suffix = part[p] "_" level[l]
            gsub(/-/, "_", suffix)
            print ""
            for (n = 1; n <= name_count; n++) if (!tuned[n])
                printf "extern void kiln__cpu_%s_%s(const void *arguments, const kiln_cpu_span *span);\n", name[n], suffix
            printf "static const kiln_kernel_info cpu_%s[] = {\n", suffix
            for (n = 1; n <= name_count; n++)
                if (tuned[n]) printf "%s", absent("kiln_" name[n] "_" part[p])
                else printf "    {.name = \"kiln_%s_%s\", .arguments_size = %d, .function = kiln__cpu_%s_%s},\n", name[n], part[p],
                    arguments["kiln_" name[n] "_" part[p]], name[n], suffix
            print "};"
            images[part[p]] = images[part[p]] sprintf("    {.target = \"%s\",\n     .kind = KILN_IMAGE_CPU,\n" \
                "     .kernel_size = sizeof(kiln_kernel_info),\n     .kernels = cpu_%s},\n", level[l], suffix)
        }
        printf "\nstatic const kiln_image images_%s[] = {\n%s};\n", part[p], images[part[p]]
    }

    print "\nstatic const kiln_part parts[] = {"
    for (p = 1; p <= part_count; p++)
        printf "    {.name = \"%s\",\n     .images = images_%s,\n     .kernel_names = names_%s,\n" \
            "     .image_count = sizeof images_%s / sizeof(kiln_image),\n     .image_size = sizeof(kiln_image),\n" \
            "     .kernel_count = sizeof names_%s / sizeof(char *)},\n", part[p], part[p], part[p], part[p], part[p]
    print "};"

    printf "\nextern const kiln_bundle kiln__bundle_%s;\nconst kiln_bundle kiln__bundle_%s = {.version = KILN_BUNDLE_VERSION,\n" \
        "    .part_size = sizeof(kiln_part),\n    .name = \"%s\",\n    .parts = parts,\n" \
        "    .part_count = sizeof parts / sizeof(kiln_part)};\n", op, op, op
    printf "\nKILN_LINK_BUNDLE(kiln__bundle_%s);\n", op
}
