import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Counters of the compressed swap cache. */
export const ZswapStatus = defineResource({
  type: 'ZswapStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'ZswapStatus',
  columns: {
    'Total Size': '{.totalSizeHuman}',
    'Stored Pages': '{.storedPages}',
    'Written Back': '{.writtenBackPages}',
    'Pool Limit Hit': '{.poolLimitHit}',
  },
  spec: v.object({
    totalSize: integer,
    totalSizeHuman: v.string(),
    storedPages: integer,
    poolLimitHit: integer,
    rejectReclaimFail: integer,
    rejectAllocFail: integer,
    rejectKmemcacheFail: integer,
    rejectCompressFail: integer,
    rejectCompressPoor: integer,
    writtenBackPages: integer,
  }),
})
