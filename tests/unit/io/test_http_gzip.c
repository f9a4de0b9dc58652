/* Bytes as gzip, as they come (io/http/http_gzip.h): nothing is lost, whatever the pieces. */
#include "io/http/http_gzip.h"

#include <gio/gio.h>
#include <string.h>

struct source {
    struct http_bytes bytes;
    const char *text;
    gsize length, at, piece;
    bool breaks; /* at its end */
    bool *freed;
};

static gssize give(struct http_bytes *bytes, void *place, gsize length, GError **error)
{
    struct source *source = (struct source *)bytes;
    gsize taken = MIN(MIN(length, source->piece), source->length - source->at);
    if (taken == 0 && source->breaks) {
        fettle_set_error(error, UNREACHABLE, "luxid does not answer");
        return -1;
    }
    memcpy(place, source->text + source->at, taken);
    source->at += taken;
    return (gssize)taken;
}

static void given(struct http_bytes *bytes)
{
    *((struct source *)bytes)->freed = true;
    g_free(bytes);
}

static struct http_bytes *source_of(const char *text, gsize length, gsize piece, bool breaks,
                                    bool *freed)
{
    struct source *source = g_new(struct source, 1);
    *source = (struct source){{give, given}, text, length, 0, piece, breaks, freed};
    *freed = false;
    return &source->bytes;
}

/* All of it, read in such pieces; NULL: it has broken off. */
static GByteArray *read_all(struct http_bytes *bytes, gsize piece, GError **error)
{
    GByteArray *all = g_byte_array_new();
    g_autofree guint8 *place = g_malloc(piece);
    gssize got;
    while ((got = bytes->read(bytes, place, piece, error)) > 0) {
        g_assert_cmpuint((gsize)got, <=, piece);
        g_byte_array_append(all, place, (guint)got);
    }
    if (got == 0)
        return all;
    g_byte_array_unref(all);
    return NULL;
}

static void assert_same(const GByteArray *packed, const char *text, gsize length)
{
    g_autoptr(GConverter) inflate =
        G_CONVERTER(g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP));
    g_autoptr(GInputStream) base =
        g_memory_input_stream_new_from_data(packed->data, packed->len, NULL);
    g_autoptr(GInputStream) stream = g_converter_input_stream_new(base, inflate);
    g_autofree char *place = g_malloc(length + 1);
    gsize got;
    g_autoptr(GError) error = NULL;
    g_input_stream_read_all(stream, place, length + 1, &got, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(got, ==, length);
    g_assert_true(memcmp(place, text, length) == 0);
}

static char *text_of(gsize length)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; text->len < length; i++)
        g_string_append_printf(text, "{\"name\": \"web%u\", \"disk\": %u}, ", i, i * 2654435761u);
    g_string_truncate(text, length);
    return g_string_free(text, FALSE);
}

static void test_whole(void)
{
    static const gsize lengths[] = {0, 1, 70000, 3000000};
    static const struct {
        gsize given, read;
    } pieces[] = {{65536, 65536}, {1000, 17}, {16384, 16384}, {G_MAXSIZE, 1}};
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autofree char *text = text_of(lengths[i]);
        for (guint k = 0; k < G_N_ELEMENTS(pieces); k++) {
            bool freed;
            g_autoptr(GError) error = NULL;
            struct http_bytes *bytes =
                http_gzip(source_of(text, lengths[i], pieces[k].given, false, &freed));
            g_autoptr(GByteArray) packed = read_all(bytes, pieces[k].read, &error);
            g_assert_no_error(error);
            assert_same(packed, text, lengths[i]);
            if (lengths[i] > 1000000)
                g_assert_cmpuint(packed->len, <, lengths[i] / 2);
            guint8 more;
            g_assert_cmpint(bytes->read(bytes, &more, 1, NULL), ==, 0); /* it stays over */
            bytes->free(bytes);
            g_assert_true(freed);
        }
    }
}

/* What breaks off has no end, so nobody takes it for whole. */
static void test_broken(void)
{
    bool freed;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = text_of(100000);
    struct http_bytes *bytes = http_gzip(source_of(text, 100000, 5000, true, &freed));
    g_assert_null(read_all(bytes, 4096, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    bytes->free(bytes);
    g_assert_true(freed);
    bytes = http_gzip(source_of(text, 100000, 5000, false, &freed)); /* nobody reads it */
    bytes->free(bytes);
    g_assert_true(freed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http-gzip/whole", test_whole);
    g_test_add_func("/http-gzip/broken", test_broken);
    return g_test_run();
}
