/* A step of the model as a CUDA graph: captured once, then launched as one. Elsewhere there are no graphs. */
#ifndef LLAMA_GRAPH_H
#define LLAMA_GRAPH_H

#include <kiln/kiln.h>
#include <stdbool.h>

typedef struct llama_graph llama_graph;

/* Captures what `record` puts on the stream. NULL where the device has no graphs, or its driver cannot: then the step
 * is done call by call. The stream is of a device's primary context, kiln's own choice. *out_status is the recording's.
 */
llama_graph *llama_graph_capture(kiln_stream *stream, kiln_status (*record)(void *user), void *user,
                                 kiln_status *out_status);
/* Puts the graph on the stream. False if the driver does not take it; nothing of it then runs. */
bool llama_graph_launch(llama_graph *graph, kiln_stream *stream);

/* NULL is accepted. */
void llama_graph_destroy(llama_graph *graph);

#endif
