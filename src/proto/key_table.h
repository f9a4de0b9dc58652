/*
 * Who holds a certificate or a secret of the cluster: the rows of keys.def, for the command line.
 */
#pragma once

struct key_holder {
    const char *name;
    const char *files, *signed_by; /* for the test that holds the code against them */
    const char *holders, *opens, *renewed, *waits;
};

/* Ends with a row without a name. */
extern const struct key_holder key_holders[];
