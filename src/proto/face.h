/*
 * The face that luxid has for a connection: which words it takes and shows (face.def). A property
 * of the connection, so of each of its requests. The reader of opcodes, and the writers of rows,
 * jobs and the cluster's settings take it as a parameter; nothing else knows of it.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

enum face {
#define FACE(ID, socket, whom) FACE_##ID,
#define WORD(ID, member, ours, theirs)
#define READ(ID, member, ours, theirs)
#define SHOW(ID, member, ours, theirs)
#include "proto/face.def"
#undef FACE
#undef WORD
#undef READ
#undef SHOW
    FACES
};

struct face_word {
    enum face face;
    const char *member, *ours, *theirs;
    bool read, shown;
};
const struct face_word *face_word_table(size_t *ret_count);

/* The name of its socket in the folder run/. */
const char *face_socket(enum face face);
/* Whether a value of that name may look different there. */
bool face_differs(enum face face, const char *member);
/* The word for one of ours; itself if there is no other. */
const char *face_word(enum face face, const char *member, const char *ours);
/* What is shown for a value of that name (NULL: it has none), and for all that is inside of it;
 * `value` is stolen and stays as it is. Nothing is made anew for FACE_OWN. */
json_t *face_show(enum face face, const char *member, json_t *value);
/* The other way: in our words, what came from there; a new reference. */
json_t *face_read(enum face face, const char *member, json_t *value);
