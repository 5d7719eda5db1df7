/** What the kernel calls this start of it (random(4)): another start has another. */
export const bootIdPath = '/proc/sys/kernel/random/boot_id'
