/* New ids: UUIDs version 7 for what requests make. Each scheduler's go up strictly, so that tables keyed by them grow at their end;
 * unless the wall clock goes back, or another store is opened. From an actor; never blocks. */
#ifndef COPPICE_HTTP_NEW_ID_H
#define COPPICE_HTTP_NEW_ID_H

#include "store/uuid.h"

struct uuid new_id(void);

#endif
