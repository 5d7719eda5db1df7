/** Preloaded by the unit suite. Properties that name no number of runs are tried as often as FUZZ_RUNS scales the number of the library. */
import fc from 'fast-check'
import { runs } from './runs.ts'

fc.configureGlobal({ ...fc.readConfigureGlobal(), numRuns: runs(100) })
