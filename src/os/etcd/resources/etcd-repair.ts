import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** An etcd member that cannot use its data, and what is done about it; none while its data is in order. */
export const EtcdRepair = defineResource({
  type: 'EtcdRepairs.etcd.ichor.dev',
  namespace: 'etcd',
  displayType: 'EtcdRepair',
  initials: false,
  columns: { State: '{.state}', Reason: '{.reason}', At: '{.time}', Waiting: '{.waiting}', Kept: '{.kept}' },
  spec: v.object({
    /** Whether the member has to wait before its data is put aside, joins the others again, or votes again. */
    state: v.picklist(['waiting', 'joining', 'voting']),
    /** Why the data cannot be used. */
    reason: v.string(),
    /** When the data was put aside; before that, when this was found. */
    time: v.string(),
    /** What has to be so before the data is put aside; empty when it was. */
    waiting: v.string(),
    /** Folder with the data that was put aside, for a day after the member votes again; empty when there is none. */
    kept: v.string(),
  }),
})
