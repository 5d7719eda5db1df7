import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** All API server addresses known to the node. */
export const KubePrismEndpoint = defineResource({
  type: 'KubePrismEndpoints.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubePrismEndpoint',
  columns: { Hosts: '{.endpoints[*].host}', Ports: '{.endpoints[*].port}' },
  spec: v.object({ endpoints: v.optional(v.array(v.object({ host: v.string(), port: integer })), []) }),
})
