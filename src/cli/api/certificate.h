/*
 * What a front end of the API has of the cluster's master: whether its node is on record for one,
 * and the certificate that it shows, which is made for that alone. Asked in the role apid, by way
 * of the front end's own node, whose certificate is the proof (SAF-100).
 */
#pragma once

#include "cli/api/front_end.h"

/* False with an error if the master cannot be asked. */
bool front_end_on_record(const struct front_end *end, bool *ret_is, GError **error);
/* Makes a key and has it certified; both in etc/apid.pem, synced, whoever had it before. */
bool front_end_certify(const struct front_end *end, GError **error);
