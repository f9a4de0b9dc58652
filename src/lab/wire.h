/*
 * Between the library and a lab's supervisor: one JSON document and the byte 0x03 in each direction
 * on DIR/lab.sock, one command a connection. {"do":"power","node":"node2","on":false} is answered
 * by {"result":…} or
 * {"error":["wire name","message"]}.
 */
#pragma once

#include "base/json.h"

/* Sends a command and waits for the answer; new reference. WRONG_STATE if no supervisor listens
 * there. */
json_t *wire_call(const char *socket_path, const json_t *request, GError **error);

/* A listening socket; -1 on failure. */
int wire_listen(const char *socket_path, GError **error);
/* The supervisor's side of one connection. Bad bytes are PROTOCOL, too many LIMIT. */
json_t *wire_receive(int fd, GError **error);
bool wire_send(int fd, const json_t *document, GError **error);
