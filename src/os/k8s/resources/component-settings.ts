import * as v from 'valibot'

/** What the configuration sets of any component of the control plane. */
export const componentSettings = {
  extraArgs: v.optional(v.record(v.string(), v.object({ values: v.optional(v.array(v.string()), []) })), {}),
  extraVolumes: v.optional(v.array(v.object({ name: v.string(), hostPath: v.string(), mountPath: v.string(), readonly: v.boolean() })), []),
  environmentVariables: v.optional(v.record(v.string(), v.string()), {}),
  resources: v.object({
    requests: v.optional(v.record(v.string(), v.string()), {}),
    limits: v.optional(v.record(v.string(), v.string()), {}),
  }),
}
