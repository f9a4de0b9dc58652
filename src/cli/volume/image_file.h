/* `fettle image create --file`, `fettle image save`: an image out of a file, and into one. */
#pragma once

#include "cli/volume/volume_ask.h"

/* What the flags of `create` say; texts NULL: not given. */
struct image_file {
    const char *name, *file, *format, *backend, *description;
};
int image_from_file(struct cli *cli, const struct image_file *image, GError **error);
int image_save(struct cli *cli, int argc, char **argv, GError **error);
