/* Lists of jobs, newest first: GET /v1/jobs, a client's own; and GET /jobs on the operator's listener, everybody's.
 *
 * Of a client they stand in the order of their creation; of all, in that of their ids, which is the order of their submits to the
 * millisecond. A page looks at no more than JOBS_SCAN_MAX jobs: one with a filter that few pass may have fewer items than its limit,
 * even none, and a cursor to go on with. Which jobs are on the page is found out first, since the answer's head says where the next
 * one begins; then they are read again, and those that have gone or don't pass any more are left out. Each chunk is a view of its
 * own, and none is open while the client takes the bytes.
 */
#ifndef COPPICE_HTTP_JOB_LIST_H
#define COPPICE_HTTP_JOB_LIST_H

#include "http/route.h"

#define JOBS_PAGE_USUAL 20u
#define JOBS_PAGE_MAX   100u
#define JOBS_ALL_MAX    1000u /* the longest page of an operator */
#define JOBS_SCAN_MAX   1024u /* jobs that one page looks at */
#define JOBS_SCAN_CHUNK 256u  /* of them in one view */

void job_list_serve(const struct request *q, struct response *r);     /* {"items":[...],"next_cursor":...} */
void job_list_serve_all(const struct request *q, struct response *r); /* {"jobs":[...],"next":...} */

#endif
