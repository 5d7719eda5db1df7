import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** The address of the local API load balancer, and its upstreams. */
export const KubePrismConfig = defineResource({
  type: 'KubePrismConfigs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubePrismConfig',
  columns: { Host: '{.host}', Port: '{.port}', Endpoints: '{.endpoints}' },
  spec: v.object({ host: v.string(), port: integer, endpoints: v.optional(v.array(v.object({ host: v.string(), port: integer })), []) }),
})

/** All API server addresses known to the node. */
export const KubePrismEndpoint = defineResource({
  type: 'KubePrismEndpoints.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubePrismEndpoint',
  columns: { Hosts: '{.endpoints[*].host}', Ports: '{.endpoints[*].port}' },
  spec: v.object({ endpoints: v.optional(v.array(v.object({ host: v.string(), port: integer })), []) }),
})

/** Whether the local API load balancer has a healthy endpoint. */
export const KubePrismStatus = defineResource({
  type: 'KubePrismStatuses.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubePrismStatus',
  columns: { HOST: '{.host}', HEALTHY: '{.healthy}' },
  spec: v.object({ host: v.string(), healthy: v.boolean() }),
})
