/*
 * Back ends of volumes, as a storage service thinks against them: backend/volume/ has the real
 * ones, tests/helper/ a fake. One driver serves every back end of its process; each call names the
 * record of the one that it is about, and waits in a task, as long as that back end does: what
 * touches it is done by a child process, so that one that hangs holds up nobody else. The record
 * is the caller's, and stays as it is while it waits.
 *
 * Data has names: UUID.CLAIM, where the claim is the serial of the commit under which it is made
 * (SAF-52). Where it lies follows from the kind of the resource: what has another kind is another
 * thing, whatever its name. Nothing here is ever renamed, overwritten or shortened. Whoever
 * creates, grows or removes has the right to by the record; the driver knows no records but the
 * back end's.
 *
 * Errors, of all calls: ENVIRONMENT: the place is not there, is not what the record says, or has
 * not the right marker (SAF-123); STORAGE: it fails; NO_RESOURCES: it is full; TIMEOUT: it hangs;
 * KILLED: the process ends.
 */
#pragma once

#include "proto/records.h"

struct volume_driver;

/* One thing that a back end has. */
struct volume_data {
    enum resource_type type;
    char *name;
    guint64 bytes; /* size as a guest would see it */
    bool whole;    /* it says so itself, since it was on stable storage (`fettle.whole`) */
    bool open;     /* a guest has it open; only `find` looks */
    bool mute;     /* it could not say that it is whole: nothing can be marked there */
};
void volume_data_free(void *data); /* struct volume_data */

/* One node's part in a check of a back end by several at once. */
struct volume_check {
    const char *token; /* of this check, a UUID */
    guint place;       /* among the `nodes`; 0: it holds locks, which the others must be refused */
    guint nodes;
    /* What comes of it: sentences of this node, to be freed with g_free(). */
    GPtrArray *problems, *notes;
    bool unseen; /* what place 0 has made is not seen */
};

/* The bytes of an image on their way to or from one client, who gets at them by NBD. */
struct volume_transfer {
    char *path;    /* of a Unix socket, for a client on this node; NULL: */
    char *address; /* of this node, for one elsewhere, */
    guint64 port;
    char *key; /* and TLS-PSK in hexadecimal, without which nobody is let in */
};

enum volume_transfer_state {
    TRANSFER_WAITS, /* nobody is there */
    TRANSFER_STANDS,
    TRANSFER_STUCK, /* somebody is there, who has got no further for too long */
    TRANSFER_OVER   /* whoever came has gone, or it has failed */
};

/* What an image is known by, once it is whole. */
struct image_sums {
    guint64 size, virtual_size; /* of the file, of the disk that it is */
    char checksum[33];          /* MD5 of the file, in hexadecimal */
    char os_hash_value[129];    /* SHA-512, likewise */
};
#define IMAGE_SUM_DIGITS 128
#define IMAGE_CHECKSUM_DIGITS 32
/* So many digits, none in upper case; or empty, which is not said. */
bool image_sum_is_good(const char *sum, gsize digits);

struct volume_driver_ops {
    /* Before anything else in the life of the process: the place is there, and its marker has these
     * two UUIDs. `make`: a place that has none gets it, if it is empty. UNSAFE: it belongs to
     * another back end or cluster. */
    bool (*open)(struct volume_driver *driver, const struct backend *backend,
                 const struct cluster *cluster, bool make, GError **error);
    /* What can be given, and has been, in MiB. */
    bool (*space)(struct volume_driver *driver, const struct backend *backend, guint64 *ret_free,
                  guint64 *ret_total, GError **error);
    /* Makes blank data of that size: whole, on stable storage with the name of it, and marked so.
     * ALREADY_EXISTS: there is something of that name. After another error something may be there.
     */
    bool (*create)(struct volume_driver *driver, const struct backend *backend,
                   enum resource_type type, const char *name, guint64 size_gib, GError **error);
    /* The same, with what SOURCE, which is on `from`, has in its first `size_gib` GiB, which may be
     * all of it and less; behind that it is blank. A point in time only if nobody writes to the
     * source (SAF-120). How long it may take goes by the size. UNKNOWN_ENTITY: there is no source.
     */
    bool (*copy)(struct volume_driver *driver, const struct backend *from,
                 enum resource_type source_type, const char *source, const struct backend *backend,
                 enum resource_type type, const char *name, guint64 size_gib, GError **error);
    /* The same as create, of data that somebody else is to fill, and that does not count as whole
     * before `settle`. */
    bool (*prepare)(struct volume_driver *driver, const struct backend *backend,
                    enum resource_type type, const char *name, guint64 size_gib, GError **error);
    /* It is filled: of that size, on stable storage, and marked as whole, but for a volume, whose
     * it is not: a copy of one moment that goes again. WRONG_STATE: somebody has it open still. */
    bool (*settle)(struct volume_driver *driver, const struct backend *backend,
                   enum resource_type type, const char *name, guint64 size_gib, GError **error);
    /* Makes a backup, one compressed file, of what SOURCE, which is on `from`, has in its first
     * `size_gib` GiB, and it may have more; whole and marked as above, and a point in time as a
     * copy is. Gives its length and SHA-512, to be freed with g_free(). UNKNOWN_ENTITY: there is no
     * source. */
    bool (*back_up)(struct volume_driver *driver, const struct backend *from,
                    enum resource_type source_type, const char *source,
                    const struct backend *backend, const char *name, guint64 size_gib,
                    guint64 *ret_bytes, char **ret_sum, GError **error);
    /* Makes a volume of that size of a backup, which is on `from`; behind what that has it is
     * blank. The record of the backup stays as it is meanwhile. UNKNOWN_ENTITY: there is no such
     * file; CORRUPT: it is not what was written, or would have other files read; then nothing is
     * made. */
    bool (*restore)(struct volume_driver *driver, const struct backend *from,
                    const struct backup *backup, const struct backend *backend, const char *name,
                    guint64 size_gib, GError **error);
    /* Makes the file of an image, in that format, of what a volume, which is on `from`, has in its
     * first `size_gib` GiB; whole and marked as above, a point in time as a copy is, and measured
     * as by `measure`. UNKNOWN_ENTITY: there is no source. */
    bool (*upload)(struct volume_driver *driver, const struct backend *from, const char *source,
                   const struct backend *backend, const char *name, enum disk_format format,
                   guint64 size_gib, struct image_sums *ret_sums, GError **error);
    /* The file of an image to which nobody writes any more is cut to the length that was said, on
     * stable storage then, marked as whole, and measured as it is there (SAF-60). `said`: what it
     * is to be, as far as it was said: a length, sums. UNKNOWN_ENTITY: there is none; CORRUPT: it
     * is not that, is not in that format, damaged, empty, or would have other files read; then it
     * is not marked. */
    bool (*measure)(struct volume_driver *driver, const struct backend *backend, const char *name,
                    enum disk_format format, const struct image_sums *said,
                    struct image_sums *ret_sums, GError **error);
    /* Makes a volume of that size of an image, which is on `from`; behind what that has it is
     * blank. The record of the image stays as it is meanwhile. Errors as of restore. */
    bool (*download)(struct volume_driver *driver, const struct backend *from,
                     const struct image *image, const struct backend *backend, const char *name,
                     guint64 size_gib, GError **error);
    /* Makes a volume at least that large; a smaller size, or the same again, changes nothing.
     * UNKNOWN_ENTITY: there is no such data. */
    bool (*grow)(struct volume_driver *driver, const struct backend *backend, const char *name,
                 guint64 size_gib, GError **error);
    /* No error if there is none. WRONG_STATE: somebody has it open, so it stays. */
    bool (*remove)(struct volume_driver *driver, const struct backend *backend,
                   enum resource_type type, const char *name, GError **error);
    /* UNKNOWN_ENTITY: there is no such data. */
    struct volume_data *(*look)(struct volume_driver *driver, const struct backend *backend,
                                enum resource_type type, const char *name, GError **error);
    /* All data of one resource (UUID), in no order: GPtrArray of struct volume_data. */
    GPtrArray *(*find)(struct volume_driver *driver, const struct backend *backend,
                       enum resource_type type, const char *uuid, GError **error);
    /* All that is there under names of data, GPtrArray of struct volume_data; with `whole` not
     * looked at. What has other names is not ours, and is left out. */
    GPtrArray *(*list)(struct volume_driver *driver, const struct backend *backend, GError **error);
    /* After `open`: whether all works there that volumes need, between nodes too; touches no data.
     * False: it could not be tried. */
    bool (*check)(struct volume_driver *driver, const struct backend *backend,
                  struct volume_check *check, GError **error);
    /* Lets one client, by NBD, write to a new file of an image, with room for so many bytes; or,
     * with `bytes` 0, read what is there. `address`: of this node, to be reached from others; NULL:
     * the client is here. It has a place among the calls of its back end until it is ended, with
     * the process at the latest. ALREADY_EXISTS, UNKNOWN_ENTITY as of create and copy. */
    struct volume_transfer *(*transfer)(struct volume_driver *driver, const struct backend *backend,
                                        const char *name, guint64 bytes, const char *address,
                                        GError **error);
    /* Does not wait. */
    enum volume_transfer_state (*transfer_state)(const struct volume_transfer *transfer);
    /* Nobody reads or writes any more, which it waits for; it is freed. False: that is not sure.
     * NULL is allowed. */
    bool (*transfer_end)(struct volume_transfer *transfer);
    /* How many children hang in it; one that touched two back ends may do so in either, and counts
     * at both until a call at one alone has come back. Does not wait. */
    guint (*hanging)(struct volume_driver *driver, const struct backend *backend);
};

struct volume_driver {
    const struct volume_driver_ops *ops;
};

/* UUID.CLAIM; free with g_free(). */
char *volume_data_name(const char *uuid, guint64 claim);
/* What a name says; false: it is no name of data. `ret_uuid` is to be freed with g_free(). */
bool volume_data_parse(const char *name, char **ret_uuid, guint64 *ret_claim);
