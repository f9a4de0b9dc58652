/*
 * Resources: what rows of work are about, records of several kinds (proto/storage/resources.def)
 * seen alike, so that whoever accepts, steps, ends, cleans or resets work knows no kind. A
 * `struct resource` is a plain value whose texts are borrowed: of the record that it was read from,
 * or of whoever has put others in.
 */
#pragma once

#include "core/config/model.h"
#include "proto/storage/work_table.h"

struct resource {
    enum resource_type type;
    bool exists; /* it is on record; else only type and uuid say something, status is "gone" */
    const char *uuid, *name, *description;
    const char *status, *status_why; /* status: a word of its kind */
    const char *backend, *host, *data;
    const char *project;
    const char *volume;      /* of a snapshot or a backup: what it is of; else "" */
    const char *snapshot;    /* of a backup: of which of these, by name; else "" */
    const char *volume_type; /* of a volume: UUID of its type, if it has one; else "" */
    guint64 size, created_us;
    guint64 updated_us; /* each commit sets it: nothing is put by it */
    guint64 bytes;      /* of a backup or an image: of its data; else 0 */
    const char *sum;    /* likewise its SHA-512; else "" */
    /* Of an image; its `size` is that of the smallest volume that it fits into, and follows. */
    guint64 virtual_size;
    const char *checksum; /* "" of others */
    enum disk_format disk_format;
};

/* `volume`: kind of the records, and how messages call one. */
const char *resource_kind(enum resource_type type);
/* "a", "an". */
const char *resource_article(enum resource_type type);
/* Its rows in tasks.def. */
enum task_kind resource_task_kind(enum resource_type type);
/* ", volume, snapshot": all kinds, for messages. */
extern const char resource_kinds_listed[];
/* The type whose records are of that kind, which is one. */
enum resource_type resource_type_of(const char *kind);
/* The same of any word; -1: it is no kind of resource. */
int resource_type_named(const char *kind);

/* The type whose rows in tasks.def are of that kind, which is one. */
enum resource_type resource_type_of_task(enum task_kind kind);

/* As its record (NULL: gone) says. */
struct resource resource_read(enum resource_type type, const void *record);
struct resource resource_of(const struct config *config, enum resource_type type, const char *uuid);
struct resource resource_of_row(const struct config *config, const struct worker *row);
/* The partner of a row (SAF-121); `exists` is false if it has none, or that is gone. */
struct resource resource_partner(const struct config *config, const struct worker *row);
/* What a row makes data of: its resource, or its partner; by the table that says it. */
struct resource resource_made(const struct config *config, const struct worker *row,
                              const struct work_row *work);
/* Whether a row moves its resource: what it copies is that itself, to the back end of the row. */
bool resource_is_moved(const struct worker *row);
/* The back end (UUID) that data of a row is read from, if that is another one than it is for; "":
 * it is not. */
const char *resource_read_from(const struct config *config, const struct worker *row);
/* The status of one that is whole and that nobody does anything to: `active` of an image, else
 * `available`; what one comes to without data at the end of work, `queued` or `error`; and what
 * nobody could put right, `killed` or `error`. */
const char *resource_ready_status(enum resource_type type);
const char *resource_empty_status(enum resource_type type);
const char *resource_error_status(enum resource_type type);
bool resource_is_ready(const struct resource *resource);
/* Whether a node serves both back ends (UUIDs): its member can read here and write there. */
bool resource_backends_meet(const struct config *config, const char *one, const char *other);
/* By name or UUID, as config_find(); `exists` is false with the error. */
struct resource resource_find(const struct config *config, enum resource_type type,
                              const char *name_or_uuid, GError **error);
/* Its name, or its UUID if it has none. */
const char *resource_name(const struct resource *resource);

/* Whether its data is a file of a length of its own, known by that and its sums. */
bool resource_is_file(enum resource_type type);
/* What its data has if it is whole: a file the length on record, and none while nobody knows it;
 * else its size. */
guint64 resource_full_bytes(const struct resource *resource);
/* Whether data of that length can be whole: a file is neither shorter nor longer. */
bool resource_is_full(const struct resource *resource, guint64 bytes);
/* "3 MiB of 2 GiB"; "4095 of 4096 bytes" of a file. Free with g_free(). */
char *resource_share_text(const struct resource *resource, guint64 bytes);

/* A copy of the record; NULL: gone. Free with resource_free(). */
void *resource_copy(const struct config *config, enum resource_type type, const char *uuid);
void resource_free(enum resource_type type, void *record);
/* The change by which the record, a new one too, says all this. Its status is a word of the kind.
 */
struct change *resource_put(const struct config *config, const struct resource *resource);
