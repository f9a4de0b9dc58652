/* See volume_lot.h. By splitmix64. */
#include "core/storage/volume_lot.h"

guint64 volume_lot(guint64 thing, guint64 service)
{
    guint64 mixed = thing * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15) + service;
    mixed = (mixed ^ (mixed >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}
