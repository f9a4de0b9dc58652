/*
 * Where a front end of the API has what only it may write, below run/: it may be of another user
 * than root (io/api_place.h). Names of its lock files begin with that, too.
 */
#pragma once

#define API_FOLDER "api/"
