import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

const times = v.object({
  user: v.number(),
  nice: v.number(),
  system: v.number(),
  idle: v.number(),
  iowait: v.number(),
  irq: v.number(),
  softIrq: v.number(),
  steal: v.number(),
  guest: v.number(),
  guestNice: v.number(),
})

/** Time the processors spent, by use. */
export const CPUStat = defineResource({
  type: 'CPUStats.perf.talos.dev',
  namespace: 'perf',
  displayType: 'CPUStat',
  columns: { User: '{.cpuTotal.user}', System: '{.cpuTotal.system}' },
  spec: v.object({
    cpu: v.optional(v.array(times), []),
    cpuTotal: times,
    irqTotal: integer,
    contextSwitches: integer,
    processCreated: integer,
    processRunning: integer,
    processBlocked: integer,
    softIrqTotal: integer,
  }),
})
