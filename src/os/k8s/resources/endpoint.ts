import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { ip } from '../../values.ts'

/** Addresses of the control plane from one source. */
export const Endpoint = defineResource({
  type: 'Endpoints.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'Endpoint',
  columns: { Addresses: '{.addresses}', Hosts: '{.hosts}' },
  spec: v.object({ addresses: v.optional(v.array(ip), []), hosts: v.optional(v.array(v.string()), []) }),
})
