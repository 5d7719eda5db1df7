import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Where the local API load balancer listens and whom it balances over. */
export const KubePrismConfig = defineResource({
  type: 'KubePrismConfigs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubePrismConfig',
  columns: { Host: '{.host}', Port: '{.port}', Endpoints: '{.endpoints}' },
  spec: v.object({ host: v.string(), port: integer, endpoints: v.optional(v.array(v.object({ host: v.string(), port: integer })), []) }),
})
