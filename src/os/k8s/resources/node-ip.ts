import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { ip } from '../../values.ts'

/** The addresses the kubelet reports. */
export const NodeIP = defineResource({
  type: 'NodeIPs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeIP',
  spec: v.object({ addresses: v.optional(v.array(ip), []) }),
})
