import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** What this node is called in Kubernetes. */
export const Nodename = defineResource({
  type: 'Nodenames.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'Nodename',
  columns: { Nodename: '{.nodename}' },
  spec: v.object({ nodename: v.string(), hostnameVersion: v.string(), skipNodeRegistration: v.boolean() }),
})
