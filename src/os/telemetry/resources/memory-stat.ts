import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

const spec = v.object({
  total: integer,
  used: integer,
  available: integer,
  buffers: integer,
  cached: integer,
  swapCached: integer,
  active: integer,
  inactive: integer,
  activeAnon: integer,
  inactiveAnon: integer,
  activeFile: integer,
  inactiveFile: integer,
  unevictable: integer,
  mlocked: integer,
  swapTotal: integer,
  swapFree: integer,
  dirty: integer,
  writeback: integer,
  anonPages: integer,
  mapped: integer,
  shmem: integer,
  slab: integer,
  sreclaimable: integer,
  sunreclaim: integer,
  kernelStack: integer,
  pageTables: integer,
  nfsunstable: integer,
  bounce: integer,
  writeBacktmp: integer,
  commitLimit: integer,
  commitTedas: integer,
  vmallocTotal: integer,
  vmallocUsed: integer,
  vmallocChunk: integer,
  hardwareCorrupted: integer,
  anonHugePages: integer,
  shmemHugePages: integer,
  shmemPmdMapped: integer,
  cmaTotal: integer,
  cmaFree: integer,
  hugePagesTotal: integer,
  hugePagesFree: integer,
  hugePagesRsvd: integer,
  hugePagesSurp: integer,
  hugepagesize: integer,
  directMap4k: integer,
  directMap2m: integer,
  directMap1g: integer,
})

/** How memory is used: kB, and counts of huge pages. */
export const MemoryStat = defineResource({
  type: 'MemoryStats.perf.talos.dev',
  namespace: 'perf',
  displayType: 'MemoryStat',
  columns: { Used: '{.used}', Total: '{.total}' },
  spec,
})

/** The keys of the spec. */
export const memoryStatKeys: readonly string[] = Object.keys(spec.entries)
