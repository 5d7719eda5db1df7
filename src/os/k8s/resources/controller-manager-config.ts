import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** How kube-controller-manager should run. */
export const ControllerManagerConfig = defineResource({
  type: 'ControllerManagerConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'ControllerManagerConfig',
  spec: v.object({
    enabled: v.boolean(),
    image: v.string(),
    cloudProvider: v.string(),
    podCIDRs: v.optional(v.array(v.string()), []),
    serviceCIDRs: v.optional(v.array(v.string()), []),
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
  }),
})
