/*
 * Bytes of an answer as gzip, as they are read: nothing is gathered, and whoever reads slowly holds
 * the other back as before. It takes some 270 KB for as long as it is read.
 */
#pragma once

#include "proto/http/http.h"

/* Takes the bytes, which end with it; read and freed like any. */
struct http_bytes *http_gzip(struct http_bytes *plain);
