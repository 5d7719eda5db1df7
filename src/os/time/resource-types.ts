import { AdjtimeStatus } from './resources/adjtime-status.ts'
import { TimeStatus } from './resources/time-status.ts'

/** The kinds of resources of this area. */
export const resources = [AdjtimeStatus, TimeStatus]
