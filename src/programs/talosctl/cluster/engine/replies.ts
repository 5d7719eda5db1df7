/** What the engine answers, as far as it is read: Docker and Podman leave out different keys, and answer `null` for empty lists. */

import * as v from 'valibot'

const text = v.nullish(v.string(), '')
const list = <Item extends v.GenericSchema>(item: Item) => v.nullish(v.array(item), [])
const map = v.nullish(v.record(v.string(), v.string()), {})

/** GET /info */
export const Info = v.object({
  OSType: text,
  Architecture: text,
  ServerVersion: text,
  /** Each is `name=<what>`, with further keys after commas. */
  SecurityOptions: list(v.string()),
})

/** GET /images/{name}/json */
export const Image = v.object({
  Id: v.string(),
  Architecture: text,
  Config: v.nullish(v.object({ Labels: map }), { Labels: {} }),
})

/** One network of GET /networks. */
export const Network = v.object({
  Name: v.string(),
  Id: v.string(),
  Labels: map,
  IPAM: v.nullish(v.object({ Config: list(v.object({ Subnet: text })) }), { Config: [] }),
})
export type Network = v.InferOutput<typeof Network>

/** One container of GET /containers/json. */
export const Listed = v.object({
  Id: v.string(),
  Names: list(v.string()),
  Labels: map,
  State: text,
})
export type Listed = v.InferOutput<typeof Listed>

/** GET /containers/{id}/json */
export const Container = v.object({
  Id: v.string(),
  State: v.object({ Status: text, ExitCode: v.nullish(v.number(), 0), Error: text }),
  RestartCount: v.nullish(v.number(), 0),
})
export type Container = v.InferOutput<typeof Container>

/** POST /containers/create and /networks/create */
export const Created = v.object({ Id: v.string() })

/** A line of the progress of pulling or loading an image. */
export const ImageLine = v.object({
  stream: v.optional(v.string()),
  status: v.optional(v.string()),
  id: v.optional(v.string()),
  error: v.optional(v.string()),
  progressDetail: v.optional(v.object({ current: v.optional(v.number()), total: v.optional(v.number()) })),
})
