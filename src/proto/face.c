/* See face.h. */
#include "proto/face.h"

static const struct face_word words[] = {
#define FACE(ID, socket, whom)
#define WORD(ID, member, ours, theirs) {FACE_##ID, member, ours, theirs, true, true},
#define READ(ID, member, ours, theirs) {FACE_##ID, member, ours, theirs, true, false},
#define SHOW(ID, member, ours, theirs) {FACE_##ID, member, ours, theirs, false, true},
#include "proto/face.def"
#undef FACE
#undef WORD
#undef READ
#undef SHOW
};

static const char *const sockets[] = {
#define FACE(ID, socket, whom) socket,
#define WORD(ID, member, ours, theirs)
#define READ(ID, member, ours, theirs)
#define SHOW(ID, member, ours, theirs)
#include "proto/face.def"
#undef FACE
#undef WORD
#undef READ
#undef SHOW
};

const struct face_word *face_word_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(words);
    return words;
}

const char *face_socket(enum face face)
{
    return sockets[face];
}

bool face_differs(enum face face, const char *member)
{
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (words[i].face == face && g_str_equal(words[i].member, member))
            return true;
    return false;
}

/* Of the two words of a row, the one for `word`; itself if there is none. */
static const char *other_word(enum face face, const char *member, const char *word, bool show)
{
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        const struct face_word *row = &words[i];
        if (row->face == face && (show ? row->shown : row->read) &&
            g_str_equal(row->member, member) && g_str_equal(show ? row->ours : row->theirs, word))
            return show ? row->theirs : row->ours;
    }
    return word;
}

const char *face_word(enum face face, const char *member, const char *ours)
{
    return other_word(face, member, ours, true);
}

static json_t *translate(enum face face, const char *member, json_t *value, bool show);

/* Most of what is said has nothing in it that differs, and is not copied. */
static json_t *translate_object(enum face face, json_t *object, bool show)
{
    json_t *other = NULL;
    const char *name;
    json_t *part;
    json_object_foreach(object, name, part) {
        json_autoptr translated = translate(face, name, part, show);
        if (translated == part)
            continue;
        other = other ? other : json_copy(object);
        json_object_set(other, name, translated);
    }
    return other ? other : json_incref(object);
}

/* The name of filters (luxi.def, records.def): a list of three in these may be a condition. In any
 * other value, as in tags, it is just that. */
static const char filters[] = "predicates";

/* The member that a condition of a filter (core/job/filter.h) compares, in ["=", "member", value],
 * if that may look different; NULL: it is none. */
static const char *compared(enum face face, const char *of, const json_t *list)
{
    const char *member = json_string_value(json_array_get(list, 1));
    bool condition = g_strcmp0(of, filters) == 0 && json_array_size(list) == 3 &&
                     json_is_string(json_array_get(list, 0));
    return condition && member && face_differs(face, member) ? member : NULL;
}

static json_t *translate_list(enum face face, const char *member, json_t *list, bool show)
{
    const char *of_last = compared(face, member, list);
    json_t *other = NULL;
    size_t i;
    json_t *part;
    json_array_foreach(list, i, part) {
        const char *of_part = of_last && i == 2 ? of_last : member;
        json_autoptr translated = translate(face, of_part, part, show);
        if (translated == part)
            continue;
        other = other ? other : json_copy(list);
        json_array_set(other, i, translated);
    }
    return other ? other : json_incref(list);
}

static json_t *translate(enum face face, const char *member, json_t *value, bool show)
{
    if (json_is_object(value))
        return translate_object(face, value, show);
    if (json_is_array(value))
        return translate_list(face, member, value, show);
    const char *word = member ? json_string_value(value) : NULL;
    const char *other = word ? other_word(face, member, word, show) : NULL;
    return other == word ? json_incref(value) : json_string(other);
}

json_t *face_show(enum face face, const char *member, json_t *value)
{
    if (face == FACE_OWN)
        return value;
    json_t *shown = translate(face, member, value, true);
    json_decref(value);
    return shown;
}

json_t *face_read(enum face face, const char *member, json_t *value)
{
    return face == FACE_OWN ? json_incref(value) : translate(face, member, value, false);
}
