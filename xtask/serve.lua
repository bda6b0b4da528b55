-- What wrk sends to `apr serve`. Arguments: requests sent together, rows a request, mean milliseconds between (0: none).
function init(args)
  local depth, rows, pause = tonumber(args[1]), tonumber(args[2]), tonumber(args[3])
  local body = "[" .. string.rep("[5.1,3.5,1.4,0.2]", rows, ",") .. "]"
  local one = wrk.format("POST", "/predict", { ["Content-Type"] = "application/json" }, body)
  local all = string.rep(one, depth)
  request = function() return all end
  if pause > 0 then
    math.randomseed(os.time())
    delay = function() return math.random(1, 2 * pause - 1) end
  end
end
