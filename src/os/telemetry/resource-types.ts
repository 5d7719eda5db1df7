import { APICall } from './resources/api-call.ts'
import { CPUStat } from './resources/cpu-stat.ts'
import { EventSinkConfig } from './resources/event-sink-config.ts'
import { KmsgLogConfig } from './resources/kmsg-log-config.ts'
import { MemoryStat } from './resources/memory-stat.ts'

/** The kinds of resources of this area. */
export const resources = [APICall, CPUStat, EventSinkConfig, KmsgLogConfig, MemoryStat]
