import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** This node's name in Kubernetes. */
export const Nodename = defineResource({
  type: 'Nodenames.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'Nodename',
  columns: { Nodename: '{.nodename}' },
  spec: v.object({ nodename: v.string(), hostnameVersion: v.string(), skipNodeRegistration: v.boolean() }),
})
