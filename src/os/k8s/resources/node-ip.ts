import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { ip } from '../../values.ts'

/** Which addresses the kubelet may report. */
export const NodeIPConfig = defineResource({
  type: 'NodeIPConfigs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeIPConfig',
  spec: v.object({ validSubnets: v.optional(v.array(v.string())), excludeSubnets: v.optional(v.array(v.string()), []) }),
})

/** The addresses the kubelet reports. */
export const NodeIP = defineResource({
  type: 'NodeIPs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeIP',
  spec: v.object({ addresses: v.optional(v.array(ip), []) }),
})
