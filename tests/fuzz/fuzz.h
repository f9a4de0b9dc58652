/*
 * Fuzz targets: each file fuzz_NAME.c has one LLVMFuzzerTestOneInput(), which takes any bytes and
 * must neither crash nor leak, and checks what must hold for whatever it accepted. As a test,
 * replay.c feeds it the files of corpus/NAME/ and damaged variants of those, and the files of
 * found/NAME/ as they are. `make fuzz TARGET=NAME SECONDS=60` searches with libFuzzer
 * (scripts/fuzz); what breaks a target is mended and kept in found/, and KEEP=yes keeps the
 * smallest inputs that reach code which no other reaches.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
