import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A line of the audit log: the latest calls of the machine API, numbered since the machine started. */
export const APICall = defineResource({
  type: 'APICalls.runtime.ichor.dev',
  namespace: 'runtime',
  displayType: 'APICall',
  aliases: ['audit'],
  columns: {
    Time: '{.time}',
    Method: '{.method}',
    Outcome: '{.outcome}',
    From: '{.from}',
    By: '{.by}',
    Roles: '{.roles}',
    Calls: '{.calls}',
  },
  spec: v.object({
    time: v.string(),
    method: v.string(),
    outcome: v.string(),
    from: v.string(),
    by: v.string(),
    roles: v.array(v.string()),
    calls: v.number(),
    milliseconds: v.number(),
  }),
})
