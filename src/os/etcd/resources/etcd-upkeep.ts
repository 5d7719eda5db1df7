import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The sizes of etcd's members, and what the system did about them. */
export const EtcdUpkeep = defineResource({
  type: 'EtcdUpkeeps.etcd.ichor.dev',
  namespace: 'etcd',
  displayType: 'EtcdUpkeep',
  initials: false,
  columns: { State: '{.state}', Defragmented: '{.defragmented.member}', At: '{.defragmented.time}', 'Last Full': '{.full.time}' },
  spec: v.object({
    /** Whether etcd accepts writes: `full` when a member has reached its quota. */
    state: v.picklist(['writable', 'full']),
    members: v.array(
      v.object({
        name: v.string(),
        /** Bytes of its file. */
        size: v.number(),
        /** Bytes of its file that hold data. */
        inUse: v.number(),
        /** Bytes at which it refuses writes; 0 where there is no limit. */
        quota: v.number(),
      }),
    ),
    /** The last defragmentation that this node ordered. */
    defragmented: v.optional(v.object({ member: v.string(), time: v.string(), before: v.number(), after: v.number() })),
    /** The last time this node found etcd full, for an hour. */
    full: v.optional(
      v.object({
        time: v.string(),
        /** Whether it accepted writes again afterwards. */
        recovered: v.boolean(),
        before: v.number(),
        after: v.number(),
      }),
    ),
  }),
})
