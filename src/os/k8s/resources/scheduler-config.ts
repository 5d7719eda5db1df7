import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** How kube-scheduler should run. */
export const SchedulerConfig = defineResource({
  type: 'SchedulerConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'SchedulerConfig',
  spec: v.object({
    enabled: v.boolean(),
    image: v.string(),
    extraArgs: v.optional(v.record(v.string(), v.object({ values: v.optional(v.array(v.string()), []) })), {}),
    extraVolumes: v.optional(
      v.array(v.object({ name: v.string(), hostPath: v.string(), mountPath: v.string(), readonly: v.boolean() })),
      [],
    ),
    environmentVariables: v.optional(v.record(v.string(), v.string()), {}),
    resources: v.object({
      requests: v.optional(v.record(v.string(), v.string()), {}),
      limits: v.optional(v.record(v.string(), v.string()), {}),
    }),
    config: v.optional(v.record(v.string(), v.unknown()), {}),
  }),
})
