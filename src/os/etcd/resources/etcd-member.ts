import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** This node's etcd member. */
export const EtcdMember = defineResource({
  type: 'EtcdMembers.etcd.talos.dev',
  namespace: 'etcd',
  displayType: 'EtcdMember',
  columns: { 'Member ID': '{.memberID}' },
  spec: v.object({ memberID: v.string() }),
})
