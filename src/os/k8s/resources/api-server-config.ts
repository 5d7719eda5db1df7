import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** How kube-apiserver should run. */
export const APIServerConfig = defineResource({
  type: 'APIServerConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'APIServerConfig',
  sensitive: true,
  spec: v.object({
    image: v.string(),
    cloudProvider: v.string(),
    controlPlaneEndpoint: v.string(),
    etcdServers: v.optional(v.array(v.string()), []),
    localPort: integer,
    serviceCIDR: v.optional(v.array(v.string()), []),
    extraArgs: v.optional(v.record(v.string(), v.object({ values: v.optional(v.array(v.string()), []) })), {}),
    extraVolumes: v.optional(
      v.array(v.object({ name: v.string(), hostPath: v.string(), mountPath: v.string(), readonly: v.boolean() })),
      [],
    ),
    environmentVariables: v.optional(v.record(v.string(), v.string()), {}),
    advertisedAddress: v.string(),
    resources: v.object({
      requests: v.optional(v.record(v.string(), v.string()), {}),
      limits: v.optional(v.record(v.string(), v.string()), {}),
    }),
  }),
})
