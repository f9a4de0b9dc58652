/* See key_table.h. */
#include "proto/key_table.h"

#define KEY(...) {__VA_ARGS__},
const struct key_holder key_holders[] = {
#include "proto/keys.def"
    {0},
};
#undef KEY
