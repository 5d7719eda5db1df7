/** How a cluster is kept whose nodes are containers of Docker or Podman. */

import * as v from 'valibot'

const path = v.pipe(v.string(), v.startsWith('/'))
const readOnly = { ReadOnly: v.optional(v.boolean()) }

/** A mount of every node, with the keys of the engine's API. */
export const MountRecord = v.variant('Type', [
  v.object({
    Type: v.literal('bind'),
    Source: path,
    Target: path,
    ...readOnly,
    BindOptions: v.optional(v.object({ Propagation: v.string() })),
  }),
  v.object({ Type: v.literal('volume'), Source: v.optional(v.string()), Target: path, ...readOnly }),
  v.object({
    Type: v.literal('tmpfs'),
    Target: path,
    ...readOnly,
    TmpfsOptions: v.optional(v.object({ SizeBytes: v.optional(v.number()), Mode: v.optional(v.number()) })),
  }),
])
export type MountRecord = v.InferOutput<typeof MountRecord>

/** The engine that has the nodes, and what they have beyond those of other clusters. */
export const EngineRecord = v.object({
  /** The socket of the engine. */
  socket: path,
  mounts: v.array(MountRecord),
  disableIPv6: v.boolean(),
  /** The address of the discovery server, which is a container beside the nodes. */
  discoveryAddress: v.pipe(v.string(), v.ip()),
})
export type EngineRecord = v.InferOutput<typeof EngineRecord>
