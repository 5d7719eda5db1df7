import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where apid listens, with which certificate, and whether it checks clients. */
export const APIServiceConfig = defineResource({
  type: 'APIServiceConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'APIServiceConfig',
  spec: v.object({
    listenAddress: v.string(),
    nodeRoutingDisabled: v.boolean(),
    readonlyRoleMode: v.boolean(),
    skipVerifyingClientCert: v.boolean(),
  }),
})
