/*
 * Fuzz targets: each file fuzz_NAME.c has one LLVMFuzzerTestOneInput(), which takes any bytes and
 * must neither crash nor leak, and checks what must hold for whatever it accepted. As a test,
 * replay.c feeds it the files of corpus/NAME/ and damaged variants of those; for a search, link it
 * with clang's -fsanitize=fuzzer in place of replay.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
