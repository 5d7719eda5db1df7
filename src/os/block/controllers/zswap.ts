import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { KernelParamSpec, KernelParamStatus } from '../../runtime/resources/kernel-param.ts'
import { ZswapConfig } from '../documents/zswap.ts'
import { ZswapStatus } from '../resources/zswap-status.ts'
import { prettyBinarySize } from '../sizes.ts'

const parameters = 'sys.module.zswap.parameters'
const counters = '/sys/kernel/debug/zswap'
const interval = 30_000

/** Applies the zswap configuration. */
export const configZswap: Controller = defineController({
  name: 'block.ZswapConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { parameter: shared(KernelParamSpec) },
  reconcile({ config, parameter }) {
    const document = find(declared(config.get('v1alpha1')), ZswapConfig)
    if (!document) return
    const set = (name: string, value: string) => parameter.put(`${parameters}.${name}`, { value, ignoreErrors: false })
    set('enabled', 'Y')
    set('max_pool_percent', String(document.maxPoolPercent ?? 20))
    set('shrinker_enabled', document.shrinkerEnabled === false ? 'N' : 'Y')
  },
})

/** Publishes the zswap counters from debugfs. */
export const observeZswap = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere'> }): Controller =>
  defineController({
    name: 'block.ZswapStatusController',
    inputs: { parameter: weak(KernelParamStatus) },
    outputs: { status: exclusive(ZswapStatus) },
    reconcile({ parameter, status, wakeIn }) {
      if (parameter.get(`${parameters}.enabled`)?.spec.current !== 'Y') return
      const counter = (name: string) => Number(files.readTextIfThere(`${counters}/${name}`) ?? 0)
      const totalSize = counter('pool_total_size')
      status.put('zswap', {
        totalSize,
        totalSizeHuman: prettyBinarySize(totalSize),
        storedPages: counter('stored_pages'),
        poolLimitHit: counter('pool_limit_hit'),
        rejectReclaimFail: counter('reject_reclaim_fail'),
        rejectAllocFail: counter('reject_alloc_fail'),
        rejectKmemcacheFail: counter('reject_kmemcache_fail'),
        rejectCompressFail: counter('reject_compress_fail'),
        rejectCompressPoor: counter('reject_compress_poor'),
        writtenBackPages: counter('written_back_pages'),
      })
      wakeIn(interval)
    },
  })
