import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The node's identity in the cluster. */
export const Identity = defineResource({
  type: 'Identities.cluster.talos.dev',
  namespace: 'cluster',
  displayType: 'Identity',
  columns: { ID: '{.nodeId}' },
  spec: v.object({ nodeId: v.string() }),
})
