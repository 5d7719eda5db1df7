import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** etcd's configuration from the machine configuration. */
export const EtcdConfig = defineResource({
  type: 'EtcdConfigs.etcd.talos.dev',
  namespace: 'etcd',
  displayType: 'EtcdConfig',
  columns: { Image: '{.image}' },
  spec: v.object({
    advertiseValidSubnets: v.optional(v.array(v.string())),
    advertiseExcludeSubnets: v.optional(v.array(v.string()), []),
    listenValidSubnets: v.optional(v.array(v.string())),
    listenExcludeSubnets: v.optional(v.array(v.string()), []),
    image: v.string(),
    extraArgs: v.optional(v.record(v.string(), v.object({ values: v.optional(v.array(v.string()), []) })), {}),
  }),
})
