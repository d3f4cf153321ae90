/* page_scan.h — finds records in the bytes of a damaged store, without its tables. */
#ifndef ST_PAGE_SCAN_H
#define ST_PAGE_SCAN_H

#include "store/records.h"

/* A record whose seal is right. Values are valid during the call. Returns false to stop. */
typedef bool (*st_take_record)(void *user, const st_table *table, int64_t id, const st_value *values);

/* Looks for records at every byte of every page of the file, and of the committed pages of its write-ahead log. A
 * record may be found more than once, also in an older form. */
mdot_status st_scan_pages(const char *path, st_take_record take, void *user, mdot_error *err);

#endif
