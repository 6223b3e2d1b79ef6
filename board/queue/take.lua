-- Takes the next tasks out of the lanes, all or nothing: the rule of turns of board/queue/lanes.py, with its memory here,
-- so that it holds over all workers together. A lane is a sorted set of ids: lane * 10^14 + milliseconds of ready_at,
-- 10^13 less for a task that comes first in its lane.
--
-- KEYS  1 mark of the last filling that was begun   2 mark of the last one that was finished
--       3 turns left in this round (hash: lane -> turns, and the weights they come from)   4.. the lanes, urgent first
-- ARGV  1 now, in milliseconds   2 slots   3 how many of them lanes other than 0 may take together
--       4.. for each lane its number and its weight
-- Gives { number of a lane, id, number of a lane, id, ... }, urgent lanes first; false where the lanes are not complete.

local begun = redis.call('GET', KEYS[1])
if not begun or begun ~= redis.call('GET', KEYS[2]) then
  return false
end

local now, slots, rest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local function exact(number)
  return string.format('%.0f', number)
end

local lanes, weights = {}, {}
for place = 4, #KEYS do
  local number, weight = tonumber(ARGV[2 * place - 4]), tonumber(ARGV[2 * place - 3])
  local base = number * 1e14
  local lane = { key = KEYS[place], number = number, weight = weight, given = 0 }
  lane.first_until = exact(base - 1e13 + now)
  lane.usual_from, lane.usual_until = exact(base), exact(base + now)
  local first = redis.call('ZCOUNT', lane.key, '-inf', lane.first_until)
  local usual = redis.call('ZCOUNT', lane.key, lane.usual_from, lane.usual_until)
  lane.waiting = math.min(slots, first + usual) -- more need not be known to share the slots out
  lanes[#lanes + 1], weights[#weights + 1] = lane, ARGV[2 * place - 3]
end
weights = table.concat(weights, ',')

-- The memory of the round; other weights begin a new one.
local fresh = redis.call('HGET', KEYS[3], 'weights') ~= weights
for _, lane in ipairs(lanes) do
  lane.turns = not fresh and tonumber(redis.call('HGET', KEYS[3], lane.number)) or lane.weight
end

local function waits(lane)
  return lane.waiting > lane.given
end

local function urgent_with_turns(open)
  for _, lane in ipairs(open) do
    if lane.turns > 0 then
      return lane
    end
  end
end

-- The most urgent lane that has a turn left; when none has, a new round begins.
local function pick(open)
  local lane = urgent_with_turns(open)
  if not lane then
    for _, each in ipairs(lanes) do
      each.turns = each.weight + math.min(0, each.turns)
    end
    lane = urgent_with_turns(open) or open[1]
  end
  lane.turns = lane.turns - 1
  return lane
end

-- P0 in the slot that is kept for it, while others wait: without a new round, which would give them no turn, ever.
local function pick_kept(lane)
  lane.turns = math.max(lane.turns - 1, -lane.weight)
  return lane
end

for _ = 1, slots do
  local open, others = {}, false
  for _, lane in ipairs(lanes) do
    if waits(lane) and (rest > 0 or lane.number == 0) then
      open[#open + 1] = lane
    end
    others = others or (waits(lane) and lane.number ~= 0)
  end
  if #open == 0 then
    break
  end
  local lane = (rest <= 0 and others) and pick_kept(open[1]) or pick(open)
  lane.given = lane.given + 1
  if lane.number ~= 0 then
    rest = rest - 1
  end
end

local left = false
for _, lane in ipairs(lanes) do
  left = left or waits(lane)
end
if not left then -- what is spent in this round must not hold up the next rush order
  for _, lane in ipairs(lanes) do
    lane.turns = lane.weight
  end
end

local taken = {}
for _, lane in ipairs(lanes) do
  local ids = {}
  if lane.given > 0 then
    ids = redis.call('ZRANGEBYSCORE', lane.key, '-inf', lane.first_until, 'LIMIT', 0, lane.given)
  end
  if #ids < lane.given then
    local usual = redis.call(
      'ZRANGEBYSCORE', lane.key, lane.usual_from, lane.usual_until, 'LIMIT', 0, lane.given - #ids
    )
    for _, id in ipairs(usual) do
      ids[#ids + 1] = id
    end
  end
  if #ids > 0 then
    redis.call('ZREM', lane.key, unpack(ids))
  end
  for _, id in ipairs(ids) do
    taken[#taken + 1] = lane.number
    taken[#taken + 1] = id
  end
  redis.call('HSET', KEYS[3], lane.number, lane.turns)
end
redis.call('HSET', KEYS[3], 'weights', weights)
return taken
