"""What `kiln images --json` writes against the manifests of embedded/: images_test.py LISTING MANIFEST...

Prints each image that the two tell differently, or one of them alone; exit status 1 if there is any.
"""
import json
import sys

KERNEL_KEYS = {"arguments_bytes": "arguments", "registers": "registers", "spill_bytes": "spills",
               "shared_bytes": "shared", "max_threads": "threads"}
# Of tuned kernels alone; 0 of others.
SHAPE_KEYS = {"stage_bytes": "stage", "rate": "rate", "stages": "stages", "cluster": "cluster"}
TILE_KEYS = ("tile_rows", "tile_columns", "tile_depth")


def pairs(words):
    return dict(word.split("=", 1) for word in words)


def manifest_image(line):
    words = line.split()
    values = pairs(word for word in words if not word.startswith("kernel="))
    kernels = []
    for word in words:
        if word.startswith("kernel="):
            kernel = pairs(word.split(","))
            kernels.append({"name": kernel["kernel"]}
                           | {key: int(kernel[ours]) for key, ours in KERNEL_KEYS.items()}
                           | {key: int(kernel.get(ours, 0)) for key, ours in SHAPE_KEYS.items()}
                           | {"tensor_maps": kernel.get("maps")}
                           | dict(zip(TILE_KEYS, map(int, kernel.get("tile", "0x0x0").split("x")))))
    version = values["ptx"].replace(".", "") if "ptx" in values else values.get("code_object", "0")
    return {"operator": values["file"].removesuffix("." + values["target"] + "." + values["kind"])
            .removesuffix("_" + values["part"]),
            "part": values["part"], "target": values["target"], "kind": values["kind"], "bytes": int(values["size"]),
            "format_version": int(version), "driver": values.get("driver"), "sha256": values["sha256"],
            "kernels": kernels}


def by_image(images):
    for image in images:
        image["kernels"].sort(key=lambda kernel: kernel["name"])
    return {(image["operator"], image["part"], image["target"], image["kind"]): image for image in images}


with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
listed = by_image([image for image in document["images"] if image["kind"] != "cpu"])
expected = by_image([manifest_image(line) for path in sys.argv[2:] for line in open(path, encoding="utf-8")
                     if " role=linked " in line])
linked = [image.pop("linked_bytes") for image in listed.values()]
different = [key for key in sorted(listed.keys() | expected.keys()) if listed.get(key) != expected.get(key)]
for key in different:
    print("listed", listed.get(key), "expected", expected.get(key), sep="\n")
if document["bytes"] != sum(image["bytes"] for image in expected.values()):
    sys.exit(f"bytes is {document['bytes']}")
if document["linked_bytes"] != sum(linked) or min(linked) <= 0 or sum(linked) >= document["bytes"]:
    sys.exit(f"linked_bytes is {document['linked_bytes']}")
sys.exit(1 if different or not expected else 0)
